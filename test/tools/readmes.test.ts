import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { withLinks, withNote } from '../../scripts/generate/published.js'
import { root } from '../../scripts/lib/project.js'
import { linksOf, release, requireRelease } from '../../scripts/lib/repository.js'
import { commandsFor, withDependencies } from '../../scripts/pack.js'

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

test('the README has at most 120 lines', () => {
  expect(readFileSync(join(root, 'README.md'), 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(120)
})

test('the table of packages is whole', () => {
  const [, table = ''] = readFileSync(join(root, 'docs/index.md'), 'utf8').split('## Packages')
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
    'no manifest has addresses that follow from the repository %s',
    (address) => {
      expect(() => linksOf('koa', address)).toThrow('etc/published.json: repository: expected the address')
    },
  )

  test.each(names)('the manifest of %s has the addresses that follow from the repository', (name) => {
    const text = readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')
    expect(text).toBe(withLinks(name, text, release().repository))
    expect(JSON.parse(text).homepage).toContain(`/packages/${name}#readme`)
  })
})

describe('a release', () => {
  const repository = 'https://github.com/you/sluice'

  test('is refused while the address of the repository is the placeholder', () => {
    const placeholder = { published: true, repository: 'https://github.com/OWNER/sluice' }
    expect(() => requireRelease(placeholder)).toThrow('etc/published.json: repository: expected the address')
  })

  test('is refused while READMEs say that the packages are not published', () => {
    expect(() => requireRelease({ published: false, repository })).toThrow(
      'etc/published.json: published: expected true',
    )
    expect(() => requireRelease({ published: true, repository })).not.toThrow()
  })
})

describe('until packages are published', () => {
  const INSTALL = '# A\n\n```sh\nnpm install @sluice/express\n```\n\nMore.\n'

  test('a document says so below the first command that installs one, once', () => {
    const noted = withNote(INSTALL, false)
    expect(noted).toMatch(/```\n\n<!-- .* -->\n\*\*Not published yet:[\s\S]*`npm run pack`[\s\S]*-->\n\nMore\.\n$/)
    expect(withNote(noted, false)).toBe(noted)
    expect(withNote(noted, true)).toBe(INSTALL)
  })

  test('the note is behind all tabs of a command, which stay together', () => {
    const tab = '<details><summary>Koa</summary>\n\n```sh\nnpm install @sluice/koa\n```\n\n</details>\n'
    const text = INSTALL.replace('More.', `${tab}${tab.replaceAll('Koa', 'Fastify')}\nMore.`)
    const noted = withNote(text, false)
    expect(noted).toMatch(/```\n\n<details>[\s\S]*<\/details>\n\n<!-- generated[\s\S]*-->\n\nMore\.\n$/)
    expect(withNote(noted, true)).toBe(text)
  })

  test('a command within a sentence counts, and another package does not', () => {
    const text = 'Run `npx @sluice/cli doctor`,\nand read.\n\nMore.\n'
    expect(withNote(text, false)).toMatch(/^Run .*\nand read\.\n\n<!-- [\s\S]*\n\nMore\.\n$/)
    expect(withNote('`npm install ioredis`\n', false)).toBe('`npm install ioredis`\n')
  })

  test('npm run pack prints commands for each package manager, with the packages that others depend on', () => {
    expect(withDependencies(['express'], names)).toEqual(['core', 'express'])
    expect(() => withDependencies(['hapi'], names)).toThrow('got hapi')
    const printed = commandsFor({ '@sluice/core': 'file:/a b/core.tgz', '@sluice/koa': 'file:/koa.tgz' })
    expect(printed).toContain("npm install 'file:/a b/core.tgz' file:/koa.tgz\n")
    expect(printed).toContain("overrides:\n  '@sluice/core': 'file:/a b/core.tgz'\n")
    expect(printed).toContain('"resolutions": {\n    "@sluice/core": "file:/a b/core.tgz"')
  })
})
