import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')

/** The sections of errors.md by their headings. */
const sections = new Map(
  read('docs/errors.md')
    .split(/^### /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
)

const errors = [
  ...(/type SluiceErrorCode =([^;]*?)\n\n/.exec(read('packages/core/src/util/errors.ts'))?.[1] ?? '').matchAll(
    /'(\w+)'/g,
  ),
]
const warnings = [...read('packages/core/src/util/warnings.ts').matchAll(/'(SLUICE_\w+)'/g)]
const codes = [...new Set([...errors, ...warnings].map(([, code = '']) => code))]

test('errors and warnings have codes', () => {
  expect(codes).toEqual(
    expect.arrayContaining(['INVALID_POLICY', 'WAIT_EXCEEDED', 'SLUICE_OPEN_PROXY', 'SLUICE_EVICTION']),
  )
})

test.each(codes)('errors.md names the cause and the remedy of %s', (code) => {
  expect(sections.get(code)).toMatch(/\*\*Cause\.\*\* [\s\S]*\*\*Remedy\.\*\*/)
})
