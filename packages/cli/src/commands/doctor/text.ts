import { counted, inLine } from '@sluice/core/internal'
import type { Output } from '../../program/environment.js'
import type { Finding, Severity } from './finding.js'
import { type DoctorReport, PROXIES } from './report.js'

/** The width where the terminal's is not known. */
const WIDTH = 100
const WIDEST = 120
const NARROWEST = 40

const COLOURS: Readonly<Record<Severity, string>> = { ok: '32', warning: '33', error: '31' }

/** Servers that a line names. */
const MAX_NODES = 3

/** The report for people. */
export function textOf(report: DoctorReport, { isTTY, columns }: Output, hasColours: boolean): string {
  const width = Math.max(NARROWEST, Math.min(WIDEST, (isTTY && columns) || WIDTH))
  const groups = grouped(report.findings)
  const checkWidth = Math.max(0, ...groups.map(({ finding }) => finding.check.length))
  const lines = groups.flatMap((group) => linesOf(group, checkWidth, width, hasColours))
  return [inLine(titleOf(report)), '', ...lines, '', summaryOf(report), ''].join('\n')
}

function titleOf({ target, kind, nodes }: DoctorReport): string {
  if (kind === PROXIES) return `Proxies before ${target}`
  const masters = nodes.length > 1 ? ` of ${counted(nodes.length, 'master')}` : ''
  return `Redis at ${target}${kind ? `: ${kind}${masters}` : ''}`
}

interface Group {
  readonly finding: Finding
  readonly nodes: string[]
}

/** Servers with the same finding, in one: a cluster has many, and usually all of them are healthy. */
function grouped(findings: readonly Finding[]): Group[] {
  const groups = new Map<string, Group>()
  for (const finding of findings) {
    const { check, severity, message, advice, node } = finding
    // Where all is well, one finding covers all servers.
    const name = JSON.stringify(severity === 'ok' && node ? [check] : [check, severity, message, advice])
    const group = groups.get(name)
    if (!group) groups.set(name, { finding, nodes: node ? [node] : [] })
    else if (node) group.nodes.push(node)
  }
  return [...groups.values()]
}

function linesOf({ finding, nodes }: Group, checkWidth: number, width: number, hasColours: boolean): string[] {
  const { severity, check, message, advice } = finding
  const indent = 2 + 9 + checkWidth + 2
  const paint = (text: string) => (hasColours ? `\u001b[${COLOURS[severity]}m${text}\u001b[0m` : text)
  const wrap = (text: string) => wrapped(inLine(text), Math.max(NARROWEST / 2, width - indent))
  const [first = '', ...rest] = wrap(message + nodesOf(severity, nodes))
  const margin = ' '.repeat(indent)
  return [
    `  ${paint(severity.padEnd(9))}${check.padEnd(checkWidth)}  ${first}`,
    ...rest.map((line) => margin + line),
    ...(advice ? wrap(`→ ${advice}`).map((line, i) => margin + (i > 0 ? `  ${line}` : line)) : []),
  ]
}

function nodesOf(severity: Severity, nodes: readonly string[]): string {
  if (nodes.length === 0) return ''
  if (severity === 'ok')
    return nodes.length === 1 ? ` (${nodes[0]})` : ` (${nodes[0]}; well on ${nodes.length - 1} more)`
  const more = nodes.length > MAX_NODES ? ` and ${nodes.length - MAX_NODES} more` : ''
  return ` (${nodes.slice(0, MAX_NODES).join(', ')}${more})`
}

function summaryOf({ findings, tookMs }: DoctorReport): string {
  const number = (severity: Severity) => findings.filter((finding) => finding.severity === severity).length
  const errors = number('error')
  const warnings = number('warning')
  const took = `${(tookMs / 1000).toFixed(1)} s`
  if (errors + warnings === 0) return `All is well (${took}).`
  return `${counted(errors, 'error')}, ${counted(warnings, 'warning')} (${took}).`
}

/** Lines of at most `width` characters, broken at spaces; a longer word has a line of its own. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
