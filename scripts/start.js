// `npm start`: installs what is missing, builds the programs of the packages that the demo uses, and runs the demo. The output of
// both is shown only if they fail. package.json starts this with `exec`, because a shell between npm and this process would keep
// signals to itself.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { install, pnpm } from './lib/pnpm.js'
import { requireNode, root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

await whenStarted(import.meta.url, async () => {
  requireNode()
  console.log('Installing and building, which takes a minute the first time …')
  await install({ quiet: true })
  // Declarations and modules for bundlers would take twice as long again.
  const env = { SLUICE_BUILD: 'program' }
  await pnpm(['exec', 'turbo', 'run', 'build', '--filter=@sluice/examples^...'], { env, quiet: true })
})

if (process.exitCode === undefined) {
  // In this process, like `exec`: a signal reaches the demo once, whichever process it was sent to, and nothing is left running
  // if this process is killed.
  const demo = join(root, 'examples/demo/main.js')
  process.argv[1] = demo
  await import(pathToFileURL(demo).href)
}
