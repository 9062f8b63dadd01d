import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const GITHUB = fileURLToPath(new URL('../../.github/', import.meta.url))
const files = readdirSync(GITHUB, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yml'))
const FILES = files.filter((name) => /^(workflows|actions)\//.test(name)).map((name) => [name, textOf(name)] as const)

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>> | string
  readonly steps: readonly Step[]
}
interface Workflow {
  readonly permissions?: Job['permissions']
  readonly jobs?: Readonly<Record<string, Job>>
  readonly runs?: Job
}

function textOf(name: string): string {
  return readFileSync(join(GITHUB, name), 'utf8')
}

const canWrite = (permissions: Job['permissions']) =>
  typeof permissions === 'string' ? permissions !== 'read-all' : Object.values(permissions ?? {}).includes('write')

/** The commands of a job with rights: programs of the runner, and npm for what publishes alone. */
const MAY_RUN = /^(set|echo|name=|if npm view|npm publish .* --ignore-scripts < \/dev\/null$|done$|#|gh api)/

/** Everything by which foreign code, or code of development, could get the rights of a workflow. */
function problemsIn(text: string): string[] {
  const problems: string[] = []
  const { jobs, runs, permissions } = parse(text) as Workflow
  const all = Object.entries(jobs ?? { action: runs as Job })
  if (jobs && (permissions === undefined || canWrite(permissions))) problems.push('all jobs have rights')
  for (const [line, name] of text.matchAll(/^ *(?:- )?uses: (\S+).*$/gm)) {
    if (!name?.startsWith('./') && !/uses: [\w/.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)) {
      problems.push(`${name} is not pinned by its digest, with its version`)
    }
  }
  for (const [name, job] of all) {
    for (const { uses = '', run = '', with: inputs } of job.steps) {
      if (uses.startsWith('actions/checkout@') && inputs?.['persist-credentials'] !== false) {
        problems.push(`${name}: the token stays on disk`)
      }
      if (/\b(curl|wget)\b/.test(run) && !/sha256sum --check/.test(run))
        problems.push(`${name}: a download has no hash`)
      if (!canWrite(job.permissions)) continue
      if (/^(\.\/|actions\/(checkout|cache)@)/.test(uses)) problems.push(`${name}: has rights, and uses ${uses}`)
      for (const line of run.split('\n').map((each) => each.trim())) {
        if (line !== '' && !MAY_RUN.test(line)) problems.push(`${name}: has rights, and runs ${line}`)
      }
    }
  }
  return problems
}

test.each(FILES)('no code of development gets the rights of a workflow: %s', (_, text) => {
  expect(problemsIn(text)).toEqual([])
})

describe('the release', () => {
  const { jobs = {} } = parse(textOf('workflows/release.yml')) as Workflow

  test('tests and the build have no rights, and only what publishes may authenticate to npm', () => {
    const rights = Object.entries(jobs).map(([name, job]) => [name, job.permissions ?? {}])
    expect(Object.fromEntries(rights)).toEqual({
      test: {},
      build: {},
      publish: { 'id-token': 'write' },
      tag: { contents: 'write' },
    })
  })

  test('tarballs are published by the hashes that the build has reported', () => {
    const runs = jobs.publish?.steps.map(({ run = '' }) => run).join('\n') ?? ''
    expect(runs.indexOf('sha256sum --check --strict')).toBeGreaterThan(0)
    expect(runs.indexOf('npm publish')).toBeGreaterThan(runs.indexOf('sha256sum --check --strict'))
  })
})

test.each<[string, string]>([
  ['all jobs have rights', 'jobs: {}'],
  [
    'a: has rights, and runs npm test',
    'permissions: {}\njobs:\n  a:\n    permissions: { id-token: write }\n    steps:\n      - run: npm test',
  ],
  [
    'a: has rights, and runs npm publish',
    'permissions: {}\njobs:\n  a:\n    permissions: { id-token: write }\n    steps:\n      - run: npm publish',
  ],
  [
    'actions/cache@v4 is not pinned by its digest, with its version',
    'permissions: {}\njobs:\n  a:\n    steps:\n      - uses: actions/cache@v4',
  ],
  [
    'a: the token stays on disk',
    `permissions: {}\njobs:\n  a:\n    steps:\n      - uses: actions/checkout@${'0'.repeat(40)} # v4.3.1`,
  ],
  ['action: a download has no hash', 'runs:\n  steps:\n    - run: curl https://example.com | tar --extract'],
])('the check of workflows finds that %s', (problem, text) => {
  expect(problemsIn(text)).toEqual([problem])
})
