import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { pageOf } from './links.js'
import { GUIDES, LOOK_UP, PAGES } from './pages.js'

/**
 * What assistants read: the Markdown of each page beside its HTML, and `llms.txt`, which lists them. The API is not among
 * them: editors read its types.
 */
export function writeForAssistants(root: string, outDir: string, repository: string | undefined): void {
  mkdirSync(outDir, { recursive: true })
  const pages = new Map(sources(root).map((source) => [pageOf(source) as string, source]))
  const lines = new Map<string, string>()
  for (const [page, source] of pages) {
    const markdown = withLinksOfSite(readFileSync(join(root, source), 'utf8'), root, source, repository)
    const path = markdownAt(page)
    writeFileSync(join(outDir, path), markdown)
    const title = /^# (.+)$/m.exec(markdown)?.[1] ?? page
    lines.set(page, `- [${title}](${path})${after(': ', firstSentences(markdown))}`)
  }
  lines.delete('/')
  const index = [
    '# Sluice',
    '',
    '> Rate limiting and abuse control for Node servers: Express, Koa, Fastify, NestJS; memory and Redis.',
  ]
  for (const { text, items } of [...GUIDES, ...LOOK_UP]) {
    index.push('', `## ${text}`, '')
    for (const { link } of items) {
      const line = lines.get(link)
      if (line !== undefined) index.push(line)
      lines.delete(link)
    }
  }
  index.push('', '## Optional', '', ...lines.values(), '')
  writeFileSync(join(outDir, 'llms.txt'), index.join('\n'))
}

/** The sources of the pages, by their paths in the repository. */
function sources(root: string): string[] {
  const docs = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  return [...docs.map((name) => `docs/${name}`), ...Object.keys(PAGES).filter((source) => !source.includes(':'))]
}

const markdownAt = (page: string) => (page === '/' ? '/index.md' : `${page}.md`)

const CODE = /(^ *```[\s\S]*?^ *```$)/m
const LINK = /\[((?:[^[\]]|\[[^\]]*\])+)\]\((?![a-z]+:|\/)([^)#\s]+)(#[^)\s]*)?\)/g

/** Links to pages lead to their Markdown; those to sources to the repository, or are plain text without one. */
function withLinksOfSite(markdown: string, root: string, source: string, repository: string | undefined): string {
  const atSite = (_link: string, text: string, path: string, hash = '') => {
    const target = relative(root, resolve(root, dirname(source), path))
    const page = pageOf(target)
    if (page !== undefined) return `[${text}](${markdownAt(page)}${hash})`
    return repository === undefined ? text : `[${text}](${repository}/${target}${hash})`
  }
  const parts = markdown.split(new RegExp(CODE, 'gm'))
  return parts.map((part) => (CODE.test(part) ? part : part.replace(LINK, atSite))).join('')
}

const after = (mark: string, text: string | undefined) => (text === undefined ? '' : mark + text)

/** What a page is about, by its first sentences outside tables, lists and code; links are their texts. */
function firstSentences(markdown: string): string | undefined {
  const paragraphs = markdown.replace(new RegExp(CODE, 'gm'), '').split(/\n\s*\n/)
  const text = paragraphs.map((paragraph) => paragraph.trim()).find((paragraph) => /^[\w`"*[]/.test(paragraph))
  const sentences = text
    ?.replace(/\s+/g, ' ')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/:$/, '.')
    .split(/(?<=[.?!]) (?=[A-Z`"*])/)
  return sentences?.reduce((line, next) => (line.length < 60 ? `${line} ${next}` : line))
}
