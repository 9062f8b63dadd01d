import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { addressOf, release } from '../../scripts/lib/repository.js'
import { writeForAssistants } from './assistants.js'
import { checkboxes } from './checkboxes.js'
import { linksOfRepository } from './links.js'
import { writeMoved } from './moved.js'
import { GUIDES, LOOK_UP, NO_PAGES, PAGES, REFERENCE } from './pages.js'
import { pictures } from './pictures.js'
import { MINI_SEARCH } from './search.js'
import { slugify } from './slugify.js'
import { tabs } from './tabs.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Where the sources can be read; links to them are plain text until there is such an address. */
const address = addressOf(release())
const REPOSITORY = address === undefined ? undefined : `${address}/blob/main`

/** What TypeDoc has written: `npm run docs` and `npm run docs:build` have it do so first. */
const apiSidebar = fileURLToPath(new URL('../api/typedoc-sidebar.json', import.meta.url))
const api: { text: string; link: string }[] = existsSync(apiSidebar) ? JSON.parse(readFileSync(apiSidebar, 'utf8')) : []

const packageOf = (text: string) => text.split('/').slice(0, 2).join('/')

/**
 * The packages of the API. The entry at the link `here` is marked as the place of the page. Each other package has its first
 * entry alone, as the sidebar is a part of some six hundred pages.
 */
const packagesOfApi = (here?: string) => {
  const place = packageOf(api.find(({ link }) => link === here)?.text ?? '')
  const isShown = (text: string, i: number) =>
    here === undefined || packageOf(text) === place || packageOf(text) !== packageOf(api[i - 1]?.text ?? '')
  return [
    {
      text: 'API',
      link: '/api/',
      items: api
        .filter(({ text }, i) => isShown(text, i))
        .map(({ text, link }) => ({
          text: link === here ? `<span class="is-here" aria-current="true">${text}</span>` : text,
          link,
        })),
    },
    { text: 'Reference', link: '/options' },
  ]
}

/** Pages beyond docs/ find no Vue from where they are. */
const vue = dirname(createRequire(import.meta.url).resolve('vue/package.json'))

export default defineConfig({
  title: 'Sluice',
  description: 'Rate limiting and abuse control for Node servers',
  lang: 'en',
  srcDir: '..',
  srcExclude: NO_PAGES,
  rewrites: PAGES,
  cleanUrls: true,
  lastUpdated: false,
  // Otherwise each page repeats the names of all, and their navigation: four fifths of the site.
  metaChunk: true,
  // No picture, and no request for one.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    config: (md) => {
      linksOfRepository(md, ROOT, REPOSITORY)
      checkboxes(md)
      tabs(md)
      pictures(md)
    },
    anchor: { slugify },
    // Each colour has a contrast of 4.5 to its background.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  vite: {
    resolve: {
      alias: [
        { find: /^vue\/server-renderer$/, replacement: join(vue, 'server-renderer/index.mjs') },
        { find: /^vue$/, replacement: join(vue, 'dist/vue.runtime.esm-bundler.js') },
      ],
    },
    // Each plot is a file, by whose name the style knows it.
    build: { chunkSizeWarningLimit: 2000, assetsInlineLimit: 0 },
  },
  buildEnd: ({ outDir }) => {
    writeForAssistants(ROOT, outDir, REPOSITORY)
    writeMoved(outDir)
  },
  transformPageData: ({ relativePath }) =>
    relativePath === 'index.md'
      ? {
          frontmatter: {
            pageClass: 'home',
            sidebar: false,
            aside: false,
            outline: false,
            titleTemplate: 'Rate limiting for Node',
          },
        }
      : {},
  themeConfig: {
    search: {
      provider: 'local',
      options: { miniSearch: MINI_SEARCH },
    },
    outline: [2, 3],
    sidebar: {
      ...Object.fromEntries([...REFERENCE].map((link) => [link, LOOK_UP])),
      // Pages of the API are too many to be listed on each of them: the sidebar shows the package that they belong to.
      ...Object.fromEntries(api.map(({ link }) => [link, packagesOfApi(link)])),
      '/api/': packagesOfApi(),
      // The last, as the first path that a page begins with is taken.
      '/': GUIDES,
    },
    nav: [
      { text: 'Get started', link: '/get-started' },
      { text: 'Recipes', link: '/recipes' },
      { text: 'Guides', link: '/express' },
      { text: 'Reference', link: '/options' },
      { text: 'API', link: '/api/' },
    ],
  },
})
