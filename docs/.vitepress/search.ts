import type { DefaultTheme } from 'vitepress'
import { REFERENCE } from './pages.js'
import { peerNames } from './peer-names.js'
import { WORDS } from './words.js'

type Options = NonNullable<DefaultTheme.LocalSearchOptions['miniSearch']>

interface Section {
  readonly id: string
  readonly [field: string]: unknown
}

/** Guides come before reference, and both before the API. */
function weightOf(id: string): number {
  if (id.startsWith('/api/')) return 0.02
  return REFERENCE.has(id.replace(/#.*/, '')) ? 0.6 : 1
}

/** The words that people type for a section: those of its page belong to the page's title. */
function wordsOf(id: string): string {
  const [page = '', anchor = ''] = id.split('#')
  const own = `${WORDS[`${page.slice(1)}#${anchor}`] ?? ''} ${PEER_NAMES.get(id) ?? ''}`
  const title = TITLES.get(page) ?? anchor
  TITLES.set(page, title)
  return title === anchor ? `${WORDS[page.slice(1)] ?? ''} ${own}` : own
}

const PEER_NAMES = peerNames()

/** The anchor of each page's title, which is its first section. */
const TITLES = new Map<string, string>()

/**
 * The index of the search. Functions within `options` and `searchOptions` run in the browser, by their text: they can use
 * nothing from around them. Only `extractField` does not, as the index is made here.
 */
export const MINI_SEARCH: Options = {
  options: {
    fields: ['title', 'titles', 'text', 'words'],
    storeFields: ['title', 'titles', 'weight'],
    extractField: (section: Section, field: string) => {
      if (field === 'weight') return weightOf(section.id) as unknown as string
      if (field === 'words') return wordsOf(section.id)
      // Of the API, names alone: its text is that of the reference, at greater length.
      if (field === 'text' && section.id.startsWith('/api/')) return ''
      return section[field] as string
    },
    processTerm: (term: string) =>
      /^(a|an|and|are|as|at|by|do|for|from|how|i|in|is|it|me|my|of|on|or|per|so|the|to|via|vs|what|with)$/i.test(term)
        ? null
        : term.toLowerCase(),
  },
  searchOptions: {
    boost: { words: 12, title: 4, text: 1, titles: 1 },
    fuzzy: (term: string) => (term.length > 4 ? 0.2 : false),
    prefix: true,
    boostDocument: (_id: unknown, _term: string, stored?: Record<string, unknown>) => Number(stored?.weight ?? 1),
  },
}
