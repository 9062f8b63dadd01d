import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { GUIDES, LOOK_UP, PAGES } from '../../../docs/.vitepress/pages.js'

const INDEX = readFileSync(new URL('../../../docs/index.md', import.meta.url), 'utf8')

/** The path of a page's source, relative to the index. */
function sourceOf(link: string): string {
  const name = `${link.slice(1)}.md`
  const [source] = Object.entries(PAGES).find(([, page]) => page === name) ?? []
  return source ? `../${source}` : name
}

test.each([...GUIDES, ...LOOK_UP].flatMap(({ items }) => items).filter(({ link }) => link !== '/api/'))(
  'docs/index.md links to the page "$text"',
  ({ link }) => {
    expect(INDEX).toContain(`](${sourceOf(link)})`)
  },
)
