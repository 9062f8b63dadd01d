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
  const sound = [
    'package.json',
    'LICENSE',
    'src/index.ts',
    'dist/index.js',
    'dist/index.js.map',
    'dist/index.d.ts',
    'dist/index.d.ts.map',
  ]
  const map = () => JSON.stringify({ sources: ['../src/index.ts'] })

  test('are fine when every source is there with all it was built into', () => {
    expect(problemsOfContents(sound, map)).toEqual([])
    expect(problemsOfContents([...sound, 'README.md'], map)).toEqual([])
  })

  test.each(sound)('lack something without %s', (missing) => {
    const files = sound.filter((file) => file !== missing)
    expect(problemsOfContents(files, map)).not.toEqual([])
  })

  test('may hold nothing of an earlier build', () => {
    expect(problemsOfContents([...sound, 'dist/old.js'], map)).toEqual([
      'dist/old.js is left over from an earlier build; delete dist and build again',
    ])
  })

  test('may hold nothing else', () => {
    expect(problemsOfContents([...sound, 'tsconfig.json'], map)).toEqual([
      'tsconfig.json does not belong in the package',
    ])
  })

  test('have no source map that leads nowhere', () => {
    const lost = () => JSON.stringify({ sources: ['../../src/index.ts'] })
    expect(problemsOfContents(sound, lost)).toEqual([
      'dist/index.js.map points to ../src/index.ts, which is not in the package',
      'dist/index.d.ts.map points to ../src/index.ts, which is not in the package',
    ])
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
