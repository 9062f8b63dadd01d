import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

describe.each(['docs/guarantees.md', 'docs/threats.md'])('%s', (document) => {
  const text = readFileSync(join(ROOT, document), 'utf8')

  test('the document names existing files by their whole path', () => {
    const links = [...text.matchAll(/\[([^\]]*)\]\((?!https?:|#)([^)#]*)[^)]*\)/g)]
    expect(links.length).toBeGreaterThan(10)
    for (const [link, shown = '', path = ''] of links) {
      const target = join(ROOT, dirname(document), path)
      expect(existsSync(target), link).toBe(true)
      if (shown.startsWith('test/')) expect(target, link).toBe(join(ROOT, shown))
    }
  })

  test("every promise in the document's tables names the test that shows it", () => {
    const rows = text
      .split('\n\n')
      .map((block) => block.split('\n').filter((line) => line.startsWith('|')))
      .filter(([head]) => head?.includes('| shown by |'))
      .flatMap(([, , ...promises]) => promises)
    expect(rows.length).toBeGreaterThan(8)
    for (const row of rows) expect(row).toMatch(/\[test\/\S+\]\(\S+\) \|$/)
  })
})
