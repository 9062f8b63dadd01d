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
