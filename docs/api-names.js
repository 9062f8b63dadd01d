// A plugin of TypeDoc: modules have the names that users import them by.
import { readFileSync } from 'node:fs'
import { Comment, Converter } from 'typedoc'
import { apiModules } from './api-modules.js'

/** @param {import('typedoc').Application} app */
export function load(app) {
  const names = new Map([...apiModules()].map(([name, source]) => [source, name]))
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, ({ project }, reflection) => {
    const file = project.getSymbolIdFromReflection(reflection)?.fileName
    const name = reflection.parent?.isProject() && file !== undefined && names.get(file)
    if (!name || file === undefined) return
    reflection.name = name
    if (/^export \* from '@sluice\/core'$/m.test(readFileSync(file, 'utf8')))
      reflection.comment = new Comment([{ kind: 'text', text: 'It also exports all of `@sluice/core`.' }])
  })
}
