// Embeds the programs of threads (worker.ts) as text in modules of their packages, with all that they
// import. A thread then starts from wherever the package runs: its source, its build, and a user's own bundle, beside which
// nothing may be installed.
import { join } from 'node:path'
import { build } from 'esbuild'
import { licencesOf } from '../lib/licences.js'
import { root } from '../lib/project.js'

/** Each has a worker.ts, and worker.generated.ts is made of it. */
const FOLDERS = [
  'packages/core/src/features/lists/files',
  'packages/policies/src/document',
  'packages/simulate/src/read/apart',
]

/** @param {string} folder */
async function renderModule(folder) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(root, folder, 'worker.ts')],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    // Code of other packages is bundled from its source, whether that is built or not.
    conditions: ['@sluice/source'],
    minify: true,
    // The text says what it says, wherever it is built.
    charset: 'ascii',
    legalComments: 'none',
    metafile: true,
    // Modules that look for their own file take `__filename` there.
    logOverride: { 'empty-import-meta': 'silent' },
    logLevel: 'warning',
  })
  const licences = licencesOf(Object.keys(metafile.inputs).map((file) => join(root, file)))
  const program = outputFiles[0]?.text.trim() ?? ''
  // In the text, so that they are in each bundle, too.
  const text = licences.length === 0 ? program : `/*\n${licences.join('\n\n')}\n*/\n${program}`
  return `// Made by \`npm run generate\` from worker.ts: do not edit.\n\nexport const WORKER = ${JSON.stringify(text)}\n`
}

export async function make() {
  const modules = FOLDERS.map(async (folder) => [`${folder}/worker.generated.ts`, await renderModule(folder)])
  return Object.fromEntries(await Promise.all(modules))
}
