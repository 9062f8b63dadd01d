/** In CommonJS, where there is no `import.meta.url`. The latter comes first, as webpack writes the former into ES modules too. */
declare const __filename: string

/** The file of this copy of the library: its program, its source, or the bundle that contains it. Test runners add a query. */
export const [HERE = ''] = (import.meta.url ?? __filename).split(/[?#]/, 1)
