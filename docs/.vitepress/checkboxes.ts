import type { MarkdownOptions } from 'vitepress'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** `- [ ] text` as a box, as GitHub shows it. */
export function checkboxes(md: MarkdownIt): void {
  md.core.ruler.push('checkboxes', ({ tokens }) => {
    for (const [i, { type, children }] of tokens.entries()) {
      const first = children?.[0]
      if (type !== 'inline' || tokens[i - 2]?.type !== 'list_item_open' || first?.type !== 'text') continue
      first.content = first.content.replace(/^\[ \] /, '☐ ').replace(/^\[x\] /, '☑ ')
    }
  })
}
