import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { MarkdownOptions } from 'vitepress'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

type Token = ReturnType<MarkdownIt['parse']>[number]

const PLACE = /^<!-- picture: (\S+): (.+) -->\s*$/

/**
 * `<!-- picture: path: text -->` is that picture, if the file exists beside the page, and nothing while it does not. If there
 * is a picture of the same name with `-dark`, dark pages show that.
 */
export function pictures(md: MarkdownIt): void {
  md.core.ruler.before('inline', 'pictures', (state) => {
    for (const token of state.tokens) {
      const [, path = '', text = ''] = token.type === 'html_block' ? (PLACE.exec(token.content) ?? []) : []
      if (path === '') continue
      if (!isFile(besidePage(state.env, path))) continue
      token.type = 'inline'
      token.content = `![${text}](${path})`
      token.children = []
    }
  })
  md.core.ruler.push('dark-pictures', ({ tokens, env }) => {
    for (const token of tokens) {
      token.children = token.children?.flatMap((child) => withDarkTwin(child, env)) ?? null
    }
  })
}

function withDarkTwin(token: Token, env: Env): Token[] {
  const path = token.type === 'image' ? (token.attrGet('src') ?? '') : ''
  const dark = path.replace(/\.\w+$/, '-dark$&')
  if (path === dark || !isFile(besidePage(env, dark))) return [token]
  const twin = Object.assign(Object.create(token), { attrs: token.attrs?.map(([name, value]) => [name, value]) })
  twin.attrSet('src', dark)
  for (const [each, scheme] of [[token, 'light'] as const, [twin, 'dark'] as const]) {
    each.attrJoin('class', `${scheme}-only`)
    // The hidden one is not loaded.
    each.attrSet('loading', 'lazy')
  }
  return [token, twin]
}

interface Env {
  readonly realPath?: string
  readonly path?: string
}

function besidePage({ realPath, path: page = '' }: Env, path: string): string {
  return join(dirname(realPath ?? page), path)
}

function isFile(file: string): boolean {
  return existsSync(file) && statSync(file).isFile()
}
