// Deep: installs compilers.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { install } from '../../../scripts/lib/users-project.js'
import { COMPILERS, errorsIn, type Settings } from '../../packages/docs/compilers.js'
import { ensureBuilt } from '../../support/built-core.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const INSTALLED = join(ROOT, '.tmp/compilers')
const installed = (name: string) => join(INSTALLED, 'node_modules', name, 'bin/tsc')

const compilers: Record<string, string> = {
  '5.6': installed('typescript56'),
  '6': installed('typescript6'),
  ...COMPILERS,
}

const STRICT = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, target: 'es2022' }
const SETTINGS: Record<string, Settings> = {
  'as tsc --init sets them': { type: 'module', isInitial: true, options: {} },
  'for module commonjs': { type: 'commonjs', options: { ...STRICT, module: 'commonjs', esModuleInterop: true } },
  'for module node16': { type: 'module', options: { ...STRICT, module: 'node16' } },
  'for module nodenext': { type: 'module', options: { ...STRICT, module: 'nodenext' } },
  'for a bundler': { type: 'module', options: { ...STRICT, module: 'preserve', moduleResolution: 'bundler' } },
}

beforeAll(async () => {
  await install(INSTALLED, { typescript56: 'npm:typescript@~5.6.3', typescript6: 'npm:typescript@^6.0.0' })
  ensureBuilt(...readdirSync(join(ROOT, 'packages')))
})

describe.each(Object.keys(compilers))('TypeScript %s', (version) => {
  test.each(Object.keys(SETTINGS))('the samples of all pages compile %s', async (name) => {
    const settings = settingsFor(version, SETTINGS[name] as Settings)
    const place = `${version} ${name}`.replaceAll(/\W+/g, '-')
    expect(await errorsIn(place, compilers[version] as string, settings)).toEqual([])
  })
})

/** TypeScript 6 resolves CommonJS as bundlers do, unless it is told to do as version 5; version 7 has no other way. */
function settingsFor(version: string, settings: Settings): Settings {
  const { module } = settings.options
  if (version === '5.6' && settings.isInitial) return { ...settings, type: 'commonjs' }
  if (version !== '6' || module !== 'commonjs') return settings
  return { ...settings, options: { ...settings.options, moduleResolution: 'node10', ignoreDeprecations: '6.0' } }
}
