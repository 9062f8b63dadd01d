// Release: runs the documentation.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as core from '@sluice/core'
import { expect, test } from 'vitest'
import { generate, TABLE } from '../../../scripts/plots/generate.js'

const docs = fileURLToPath(new URL('../../../docs/', import.meta.url))

test('the plots and the table show what the algorithms admit; if not, run npm run docs:plots', async () => {
  const { pictures, table } = await generate(core)
  for (const [file, svg] of pictures) expect(readFileSync(`${docs}plots/${file}`, 'utf8')).toBe(svg)
  expect(readdirSync(`${docs}plots`).sort()).toEqual([...pictures.keys()].sort())
  expect(TABLE.exec(readFileSync(`${docs}choosing-an-algorithm.md`, 'utf8'))?.[0]).toBe(table)
})

/** The pages that show plots: white, the dark ones of the site, and those of GitHub. */
const DARK_PAGES = ['#1b1b1f', '#0d1117']

test.each(readdirSync(`${docs}plots`))('the text of %s has a contrast of 4.5 on light and dark pages', (file) => {
  const svg = readFileSync(`${docs}plots/${file}`, 'utf8')
  const colours = [...svg.matchAll(/<(?:svg|text)\b[^>]* fill="(#\w+)"/g)].map(([, colour = '']) => colour)
  const onDark = [...svg.matchAll(/^(?:svg|text\S*) \{ fill: (#\w+) \}$/gm)].map(([, colour = '']) => colour)
  expect(onDark.length).toBeGreaterThanOrEqual(new Set(colours).size)
  for (const colour of colours) expect(contrast(colour, '#ffffff'), colour).toBeGreaterThanOrEqual(4.5)
  for (const colour of onDark)
    for (const page of DARK_PAGES) expect(contrast(colour, page), colour).toBeGreaterThanOrEqual(4.5)
})

/** The contrast of two colours, by WCAG 2.1. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
