import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MOVED } from '../../../docs/.vitepress/moved.js'

const sourceOf = (link: string) => new URL(`../../../docs${link.replace(/#.*/, '')}.md`, import.meta.url)

test.each(Object.entries(MOVED))('the old address %s leads to the page %s', (from, to) => {
  expect(existsSync(sourceOf(from))).toBe(false)
  expect(existsSync(sourceOf(to))).toBe(true)
})
