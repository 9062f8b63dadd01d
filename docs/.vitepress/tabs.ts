import type { MarkdownOptions } from 'vitepress'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]
type Token = ReturnType<MarkdownIt['parse']>[number]

const OPEN = /^<details><summary>([^<]+)<\/summary>\s*$/
const CLOSE = /^<\/details>\s*$/

/**
 * A code block that `<details>` with one code block each follow: tabs on the site, and one below the other on GitHub. The first
 * is named by the package of ours that it imports, or is for Express. The others are named by their summaries.
 */
export function tabs(md: MarkdownIt): void {
  md.core.ruler.push('tabs', (state) => {
    const tokens: Token[] = []
    for (let i = 0; i < state.tokens.length; i++) {
      const first = state.tokens[i] as Token
      const others = first.type === 'fence' ? othersAfter(state.tokens, i) : []
      if (others.length === 0) {
        tokens.push(first)
        continue
      }
      tokens.push(new state.Token('container_code-group_open', 'div', 1))
      for (const [fence, name] of [[first, nameOf(first)] as const, ...others]) {
        fence.info = `${fence.info.split(' ')[0]} [${name}]`
        tokens.push(fence)
      }
      tokens.push(new state.Token('container_code-group_close', 'div', -1))
      i = state.tokens.indexOf(others.at(-1)?.[0] as Token) + 1
    }
    state.tokens = tokens
  })
}

/** The code blocks in `<details>` directly after the token at `i`, each with its summary. */
function othersAfter(tokens: readonly Token[], i: number): (readonly [Token, string])[] {
  const others: (readonly [Token, string])[] = []
  let html = tokens[++i]
  while (html?.type === 'html_block') {
    const summary = OPEN.exec(html.content.replace(/^<\/details>\s*/, ''))?.[1]
    const fence = tokens[i + 1]
    if (summary === undefined || fence?.type !== 'fence') break
    others.push([fence, summary])
    i += 2
    html = tokens[i]
  }
  if (others.length > 0 && !(html?.type === 'html_block' && CLOSE.test(html.content)))
    throw new Error(`the <details> of “${others.at(-1)?.[1]}” has more than one code block`)
  return others
}

const NAMES: Readonly<Record<string, string>> = {
  express: 'Express',
  koa: 'Koa',
  fastify: 'Fastify',
  nestjs: 'NestJS',
  core: 'Without HTTP',
}

function nameOf({ content }: Token): string {
  return NAMES[/@sluice\/(\w+)/.exec(content)?.[1] ?? ''] ?? 'Express'
}
