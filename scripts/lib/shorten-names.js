import { minify } from 'terser'

/** A variable that holds a function or a class, which is called like it in stack traces. */
const NAMED = /\b(?:const|let|var) (\w+) = (?:async\b|class\b|function\b|\(|\w+ =>)/g
/** What an ES module exports, as esbuild prints it. */
const EXPORTS = /^export \{([^}]*)\}/gm
/** A private method where it is defined, on a line of its own. */
const PRIVATE_METHODS = /^ +(?:static |async |get |set |\*)*#(\w+)\(/gm

/**
 * Shortens a program by a fifth, for downloads: variables and private fields get short names. Functions, methods and classes
 * keep theirs, which stack traces show. A line has a statement, so that an error shows no more.
 *
 * Exports keep their names: Rollup names an import like the variable exported, and a user's terser takes it in the default of a
 * parameter for a variable of the same name in the body (terser issue 1478). Short names would often be the same.
 *
 * @param {string} program as esbuild prints it
 * @param {boolean} [isModule] whether it is an ES module
 * @returns {Promise<string>}
 */
export async function shortenNames(program, isModule = false) {
  const exported = [...program.matchAll(EXPORTS)].flatMap(([, names]) => String(names).match(/\w+/g) ?? [])
  const reserved = [...[...program.matchAll(NAMED)].map(([, name]) => String(name)), ...exported]
  const methods = new Set([...program.matchAll(PRIVATE_METHODS)].map(([, name]) => name))
  // Terser renames everything private. Public methods keep their names, so private ones are called `$private_name$` meanwhile.
  const visible = program.replace(/#(\w+)/g, (whole, name) => (methods.has(name) ? `$private_${name}$` : whole))
  const { code } = await minify(visible, {
    ecma: 2020,
    module: isModule,
    compress: false,
    mangle: { toplevel: true, keep_fnames: true, keep_classnames: true, reserved },
    format: { semicolons: false },
  })
  return String(code).replace(/\$private_(\w+)\$/g, '#$1')
}
