// A small part of SVG for plots: elements as text, with short numbers that are equal on every machine.

/** @typedef {Record<string, string | number | undefined>} Attributes */

/**
 * @param {string} name
 * @param {Attributes} attributes
 * @param {...string} children already SVG
 */
export function element(name, attributes, ...children) {
  const text = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${typeof value === 'number' ? short(value) : escaped(String(value))}"`)
    .join('')
  if (children.length === 0) return `<${name}${text}/>`
  const isText = children.every((child) => !child.startsWith('<'))
  return isText
    ? `<${name}${text}>${children.join('')}</${name}>`
    : `<${name}${text}>\n${children.join('\n')}\n</${name}>`
}

/**
 * @param {number} x
 * @param {number} y the baseline
 * @param {string} content
 * @param {Attributes} [attributes]
 */
export const label = (x, y, content, attributes = {}) => element('text', { x, y, ...attributes }, escaped(content))

/** The colour of everything without one of its own. */
export const TEXT = '#59636e'

/** The colour of what is beyond the limit. */
export const EXCESS = '#d1305b'

/** Text has a contrast of 4.5 or more, and no colour has it on white and on dark pages. */
const DARK = `@media (prefers-color-scheme: dark) {
svg { fill: #9198a1 }
text[fill="${EXCESS}"] { fill: #f2668b }
[stroke="${TEXT}"] { stroke: #9198a1 }
}`

/**
 * A whole picture, with its title in the upper left corner.
 *
 * @param {{ title: string, label?: string, width: number, height: number }} about `label` describes it for people who do not
 * see it. Without one, the title does
 * @param {...string} content already SVG
 */
export function picture({ title, label: spoken = title, width, height }, ...content) {
  return `${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      'font-family': 'system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif',
      'font-size': 13,
      fill: TEXT,
      role: 'img',
      'aria-label': spoken,
    },
    element('style', {}, DARK),
    label(16, 26, title, { 'font-size': 17, 'font-weight': 600 }),
    ...content,
  )}\n`
}

/** @param {readonly (readonly [x: number, y: number])[]} points */
export function path(points) {
  return points
    .map(([x, y], i) => {
      const [lastX, lastY] = points[i - 1] ?? []
      if (x === lastX) return y === lastY ? '' : `V${short(y)}`
      return y === lastY ? `H${short(x)}` : `${i === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`
    })
    .join('')
}

/** @param {number} value */
const short = (value) => String(Math.round(value * 100) / 100)

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
