import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeForAssistants } from '../../../docs/.vitepress/assistants.js'
import { GUIDES, LOOK_UP } from '../../../docs/.vitepress/pages.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const SITE = mkdtempSync(join(tmpdir(), 'sluice-site-'))

beforeAll(() => writeForAssistants(ROOT, SITE, undefined))
afterAll(() => rmSync(SITE, { recursive: true }))

const read = (path: string) => readFileSync(join(SITE, path), 'utf8')

test('llms.txt has one line for each page, with its title, what it is about, and its Markdown', () => {
  const index = read('llms.txt')
  const pages = [...GUIDES, ...LOOK_UP].flatMap(({ items }) => items).filter(({ link }) => link !== '/api/')
  for (const { link } of pages) {
    const [line = '', ...more] = index.split('\n').filter((each) => each.includes(`](${link}.md)`))
    expect(line, link).toMatch(/^- \[.+\]\(.+\): .{10,300}\.$/)
    expect(more).toEqual([])
    expect(read(`${link}.md`)).toMatch(/^# /m)
  }
})

test('links of the Markdown lead to Markdown of the site', () => {
  const links = readdirSync(SITE).flatMap((name) =>
    [
      ...read(name)
        .replace(/^ *```[\s\S]*?^ *```$/gm, '')
        .matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g),
    ].map(([, link = '']) => ({ name, link })),
  )
  expect(links.length).toBeGreaterThan(500)
  expect(links.filter(({ link }) => !(link.startsWith('/') && existsSync(join(SITE, link))))).toEqual([])
})
