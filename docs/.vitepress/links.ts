import { dirname, relative, resolve } from 'node:path'
import type { MarkdownOptions } from 'vitepress'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/**
 * Links of the Markdown are relative to its place in the repository, so that they work there too. On the site those to
 * pages lead to pages; those to sources lead to `repository`, or are plain text while there is no such address.
 */
export function linksOfRepository(md: MarkdownIt, root: string, repository: string | undefined): void {
  md.core.ruler.push('links-of-repository', ({ tokens, env }) => {
    const from = dirname((env.realPath ?? env.path) as string)
    for (const { children } of tokens) {
      let asText = false
      for (const token of children ?? []) {
        if (token.type === 'link_close' && asText) {
          token.tag = 'span'
          asText = false
        }
        if (token.type !== 'link_open') continue
        const href = token.attrGet('href') ?? ''
        if (/^([a-z]+:|#|\/)/.test(href)) continue
        const [path = '', hash] = href.split('#')
        const source = relative(root, resolve(from, path))
        const page = pageOf(source)
        if (page !== undefined) token.attrSet('href', hash === undefined ? page : `${page}#${hash}`)
        else if (repository !== undefined) token.attrSet('href', `${repository}/${source}`)
        else {
          token.tag = 'span'
          token.attrs = [['title', source]]
          asText = true
        }
      }
    }
  })
}

/** The page that a file of the repository is, if it is one. */
export function pageOf(source: string): string | undefined {
  if (source === 'SECURITY.md') return '/security'
  if (source === 'bench/results.md') return '/benchmarks'
  if (source === 'bench/what-is-left.md') return '/benchmarks-missed'
  if (source === 'bench/bridges.md') return '/benchmarks-bridges'
  if (source === 'docs/index.md') return '/'
  const [, page] = /^docs\/([\w/.@-]+?)(?:index)?\.md$/.exec(source) ?? []
  return page === undefined ? undefined : `/${page}`
}
