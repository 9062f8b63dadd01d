import { apiModules } from './api-modules.js'

/** @type {Partial<import('typedoc').TypeDocOptions> & Record<string, unknown>} */
export default {
  name: 'API reference',
  entryPoints: [...apiModules().values()],
  tsconfig: 'tsconfig.json',
  plugin: ['typedoc-plugin-markdown', 'typedoc-vitepress-theme', './api-names.js'],
  out: 'api',
  docsRoot: '.',
  readme: 'none',
  disableSources: true,
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  // Adapters export all of the core, whose pages have it.
  excludeReferences: true,
  hidePageHeader: true,
  hideBreadcrumbs: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  // Every option is readonly, and the column would push the description off narrow screens.
  tableColumnSettings: { hideModifiers: true },
  treatWarningsAsErrors: false,
  logLevel: 'Error',
}
