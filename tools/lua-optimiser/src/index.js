// Exports for the build, the tests and the mutants.
export { optimise } from './optimise.js'
export { kindScripts, scriptsOf, sharedConstants } from './scripts.js'
export { bundle } from './source/bundle.js'
export { cellKindsOf } from './source/cell-kinds.js'
export { sourceIn } from './source/folder.js'
export { impurities } from './source/impurities.js'
export { piecesOf, withSections } from './source/sections.js'
export { requireDeclared } from './tree/require-declared.js'
