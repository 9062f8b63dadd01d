// What the build, the tests and the mutants use.
export { optimise } from './optimise.js'
export { banningScriptsOf, kindsInOrder, ONE, scriptsOf, sharedConstants, TOGETHER, UNIFORM } from './scripts.js'
export { bundle } from './source/bundle.js'
export { impurities } from './source/impurities.js'
export { piecesOf, withSections } from './source/sections.js'
