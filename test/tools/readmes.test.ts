import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { root } from '../../scripts/lib/project.js'
import { linksOf } from '../../scripts/lib/repository.js'

const names = readdirSync(join(root, 'packages'))
const readme = (name: string) => readFileSync(join(root, 'packages', name, 'README.md'), 'utf8')

test.each(names)('the README of %s has its installation, a first sample, its pages and what it needs', (name) => {
  const text = readme(name)
  expect(text).toMatch(new RegExp(`^(npm install .*|npx )@sluice/${name}\\b`, 'm'))
  expect(text).toMatch(/```(ts|js|sh)/)
  expect(text).toMatch(/`?docs\/([\w-]+\.md)?`/)
  expect(text).toMatch(/Node 20\.19 or later.*MIT\.\n$/s)
  // It is read where the other pages are not.
  expect(text).not.toMatch(/\]\((?!https?:|#)/)
})

test('the table of packages in the README is whole', () => {
  const [, table = ''] = readFileSync(join(root, 'README.md'), 'utf8').split('## Packages')
  const listed = [...table.matchAll(/^\| `@sluice\/(\w+)` \|/gm)].map(([, name]) => name)
  expect(listed.sort()).toEqual([...names].sort())
})

describe('the addresses of packages', () => {
  test('all addresses of a package follow from that of the repository', () => {
    expect(linksOf('koa', 'https://github.com/you/sluice')).toEqual({
      homepage: 'https://github.com/you/sluice/tree/main/packages/koa#readme',
      bugs: { url: 'https://github.com/you/sluice/issues' },
      repository: { type: 'git', url: 'git+https://github.com/you/sluice.git', directory: 'packages/koa' },
    })
  })

  test.each([undefined, '', 'github.com/you/sluice', 'https://github.com/you/sluice.git'])(
    'a release is refused where the repository is %s',
    (address) => {
      expect(() => linksOf('koa', address)).toThrow('package.json: repository: expected the address')
    },
  )

  test.each(names)('the manifest of %s has no address of its own', (name) => {
    const manifest = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))
    for (const field of ['homepage', 'bugs', 'repository']) expect(manifest).not.toHaveProperty(field)
  })
})
