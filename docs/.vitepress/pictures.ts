import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { MarkdownOptions } from 'vitepress'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

const PLACE = /^<!-- picture: (\S+): (.+) -->\s*$/

/** `<!-- picture: path: text -->` is that picture, if the file exists beside the page, and nothing while it does not. */
export function pictures(md: MarkdownIt): void {
  md.core.ruler.before('inline', 'pictures', (state) => {
    for (const token of state.tokens) {
      const [, path = '', text = ''] = token.type === 'html_block' ? (PLACE.exec(token.content) ?? []) : []
      if (path === '') continue
      const file = join(dirname((state.env.realPath ?? state.env.path) as string), path)
      if (!existsSync(file) || !statSync(file).isFile()) continue
      token.type = 'inline'
      token.content = `![${text}](${path})`
      token.children = []
    }
  })
}
