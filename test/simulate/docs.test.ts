import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { simulate } from '../../packages/cli/src/commands/simulate/command.js'
import { sluice } from '../cli/support.js'
import { filesOf } from './support.js'

const page = readFileSync(new URL('../../docs/simulate.md', import.meta.url), 'utf8')

function block(name: string): string {
  const [, text] = new RegExp(`\`\`\`\\w+ name=${name}\\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (text === undefined) throw new Error(`no block ${name}`)
  return text
}

test('the example of the page has the report that the page shows', async () => {
  const files = filesOf({ 'access.log': block('access'), 'policies.yaml': block('policies') })
  const { code, stdout } = await sluice(['simulate', files['access.log'], '--document', files['policies.yaml']])
  const shown = stdout.replace(files['access.log'], 'access.log')
  const trimmed = (text: string) => text.replace(/ +$/gm, '')
  expect(trimmed(shown)).toBe(trimmed(block('report')))
  expect(code).toBe(0)
})

test('options of the page and of the workflow are options of the command', () => {
  const workflow = readFileSync(new URL('../../examples/simulate/check-limits.yml', import.meta.url), 'utf8')
  const { steps } = parse(workflow).jobs.simulate as { steps: { run?: string }[] }
  const command = steps.flatMap(({ run = '' }) => (run.includes('@sluice/cli simulate') ? [run] : []))
  expect(command).toHaveLength(1)
  for (const [, option = ''] of `${page} ${command.join()}`.matchAll(/(?<![\w|-])--([a-z][a-z-]*)/g)) {
    expect(Object.keys(simulate.options), option).toContain(option)
  }
  for (const option of Object.keys(simulate.options)) expect(page).toContain(`--${option}`)
})
