// What the build, the tests and the mutants use.
export { optimise } from './optimise.js'
export { KINDS, scriptsOf, TOGETHER } from './scripts.js'
export { bundle } from './source/bundle.js'
export { impurities } from './source/impurities.js'
export { withSections } from './source/sections.js'
