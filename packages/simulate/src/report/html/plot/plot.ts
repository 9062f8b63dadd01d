import { type Content, type Markup, markup } from '../markup.js'
import type { Scale } from './scales.js'

/** Units of the lines within a plot, over its width and its height. */
const UNITS = 1000

export interface PlotAbout {
  /** Unique in the page. */
  readonly id: string
  readonly title: string
  /** The same for people who do not see it. */
  readonly description: string
  readonly x: Scale
  readonly y: Scale
  readonly xName: string
  readonly yName: string
  /** By the class of its colour, which `style.ts` has. */
  readonly legend: readonly (readonly [kind: string, text: string])[]
}

/**
 * A figure with a plot that is as wide as the page, in which texts keep their size: places are shares of its width and height.
 * Lines are drawn in a picture within it that is stretched.
 */
export function plot(about: PlotAbout, lines: Content, marks: Content): Markup {
  const { id, title, description, x, y, xName, yName, legend } = about
  return markup`<figure>
<figcaption>${title}</figcaption>
<ul class="legend">${legend.map(([kind, text]) => markup`<li><svg class="swatch" aria-hidden="true"><rect class="${kind}" width="14" height="14" rx="2"/></svg>${text}</li>`)}</ul>
<svg class="plot" role="img" aria-labelledby="${id}-title ${id}-text"><title id="${id}-title">${title}</title><desc id="${id}-text">${description}</desc>
${y.ticks.map(({ value, text }) => markup`<line class="grid" x1="0" x2="100%" y1="${down(y, value)}" y2="${down(y, value)}"/><text class="tick end" x="-8" y="${down(y, value)}" dy="4">${text}</text>`)}
${x.ticks.map(({ value, text }) => markup`<line class="grid" x1="${along(x, value)}" x2="${along(x, value)}" y1="0" y2="100%"/><text class="tick ${anchorOf(x, value)}" x="${along(x, value)}" y="100%" dy="18">${text}</text>`)}
<svg viewBox="0 0 ${UNITS} ${UNITS}" preserveAspectRatio="none">${lines}</svg>
${marks}<text class="axis" x="-60" y="-12">${yName}</text><text class="axis end" x="100%" y="100%" dy="36">${xName}</text></svg>
</figure>
`
}

/** A text in the middle of the right edge would be cut. */
function anchorOf(x: Scale, value: number): string {
  return x.at(value) > 0.96 ? 'end' : 'middle'
}

/** A place on the x axis, as an attribute of what is not stretched. */
export function along(x: Scale, value: number): string {
  return `${rounded(x.at(value) * 100)}%`
}

/** A place on the y axis, as an attribute of what is not stretched. */
export function down(y: Scale, value: number): string {
  return `${rounded(100 - y.at(value) * 100)}%`
}

/** The points of a line, for what is stretched. */
export function pointsOf(places: readonly (readonly [x: number, y: number])[]): string {
  return places.map(([x, y]) => `${rounded(x * UNITS)},${rounded(UNITS - y * UNITS)}`).join(' ')
}

/** A text beside a line from top to bottom: at its right, where a falling curve leaves room, if it fits in there. */
export function besideText(x: Scale, value: number, y: number, text: string): Markup {
  const isRight = x.at(value) < 0.6
  return markup`<text class="mark${isRight ? '' : ' end'}" x="${along(x, value)}" y="${y}" dx="${isRight ? 6 : -6}">${text}</text>`
}

/** With few digits: a picture has a thousand numbers. */
function rounded(number: number): number {
  return Math.round(number * 100) / 100
}
