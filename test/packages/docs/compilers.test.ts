// Release: runs the documentation.
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ensureBuilt } from '../../support/built-core.js'
import { COMPILERS, errorsIn } from './compilers.js'

test('the samples of all pages compile in a project of tsc --init', async () => {
  ensureBuilt(...readdirSync(new URL('../../../packages', import.meta.url)))
  const errors = await errorsIn('init', COMPILERS['7'], { type: 'module', isInitial: true, options: {} })
  expect(errors).toEqual([])
})
