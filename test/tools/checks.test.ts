import { describe, expect, test } from 'vitest'
import { problemsOfContents } from '../../scripts/check-packages.js'
import { requireNode } from '../../scripts/lib/project.js'
import { total } from '../../scripts/test-report.js'

describe('the test report', () => {
  const passing = {
    numPassedTests: 3,
    numFailedTests: 0,
    testResults: [{ status: 'passed', assertionResults: [{ status: 'passed' }] }],
  }

  test('adds up the runs', () => {
    expect(total([passing, { ...passing, numPassedTests: 4 }], 0)).toEqual({ passed: 7, failed: 0 })
  })

  test('counts failed tests once', () => {
    const failing = {
      numPassedTests: 2,
      numFailedTests: 1,
      testResults: [{ status: 'failed', assertionResults: [{ status: 'passed' }, { status: 'failed' }] }],
    }
    expect(total([failing], 1)).toEqual({ passed: 2, failed: 1 })
  })

  test('counts a test file that could not even load', () => {
    const broken = { numPassedTests: 2, numFailedTests: 0, testResults: [{ status: 'failed', assertionResults: [] }] }
    expect(total([broken], 1)).toEqual({ passed: 2, failed: 1 })
  })

  test('tells of a failure outside the tests', () => {
    expect(total([passing], 1)).toEqual({ passed: 3, failed: 1 })
  })

  test('takes no tests for a failure, whatever else went well', () => {
    expect(total([], 0)).toEqual({ passed: 0, failed: 1 })
    expect(total([], 1)).toEqual({ passed: 0, failed: 1 })
  })
})

describe('the contents of a package', () => {
  const expected = {
    entries: ['index', 'http'],
    declarations: ['types/index.d.ts', 'types/http/index.d.ts'],
    parts: ['dist/part.cjs'],
  }
  const complete = [
    'package.json',
    'LICENSE',
    'README.md',
    'dist/program.cjs',
    'dist/part.cjs',
    'dist/index.cjs',
    'dist/index.js',
    'dist/index.d.cts',
    'dist/index.d.ts',
    'dist/http.cjs',
    'dist/http.js',
    'dist/http.d.cts',
    'dist/http.d.ts',
    'dist/types/package.json',
    'dist/types/index.d.ts',
    'dist/types/http/index.d.ts',
  ]

  test('are fine when everything is there', () => {
    expect(problemsOfContents(complete, expected)).toEqual([])
  })

  test.each(complete)('lack something without %s', (missing) => {
    const files = complete.filter((file) => file !== missing)
    expect(problemsOfContents(files, expected)).toEqual([`${missing} is missing`])
  })

  test('are fine with a program that it installs, and lack one that is missing', () => {
    expect(
      problemsOfContents([...complete, 'bin/tool.cjs'], { ...expected, parts: [...expected.parts, 'bin/tool.cjs'] }),
    ).toEqual([])
    expect(problemsOfContents(complete, { ...expected, parts: [...expected.parts, 'bin/tool.cjs'] })).toEqual([
      'bin/tool.cjs is missing',
    ])
  })

  test.each(['dist/old.js', 'dist/types/old.d.ts', 'src/index.ts', 'tsconfig.json'])('may not hold %s', (stray) => {
    expect(problemsOfContents([...complete, stray], expected)).toEqual([`${stray} does not belong in the package`])
  })
})

describe('the Node version', () => {
  test.each(['20.19.0', '20.20.2', '22.0.0', '24.1.0'])('%s will do', (version) => {
    expect(() => requireNode(version, '>=20.19')).not.toThrow()
  })

  test.each(['20.18.3', '18.20.0'])('%s is refused', (version) => {
    expect(() => requireNode(version, '>=20.19')).toThrow(`Node >=20.19 is needed, this is ${version}`)
  })
})
