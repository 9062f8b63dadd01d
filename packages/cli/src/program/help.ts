import type { Command, OptionSpec } from './command.js'

/** The output of `sluice --help`. */
export function programHelp(commands: readonly Command[], options: Readonly<Record<string, OptionSpec>>): string {
  return sections([
    'Usage: sluice <command> [options]',
    section('Commands', table(commands.map(({ name, summary }) => [name, summary]))),
    section('Options', optionTable(options)),
    'sluice <command> --help shows the options of a command.',
  ])
}

/** The output of `sluice <command> --help`. */
export function commandHelp(
  { name, description, options, operands, examples, notes }: Command,
  common: Readonly<Record<string, OptionSpec>>,
): string {
  return sections([
    `Usage: sluice ${name} [options]${operands ? ` ${operands.placeholder}` : ''}`,
    description,
    section('Options', optionTable({ ...options, ...common })),
    section(
      'Examples',
      examples.map((example) => `  ${example}`),
    ),
    ...(notes ? [notes] : []),
  ])
}

function optionTable(options: Readonly<Record<string, OptionSpec>>): string[] {
  return table(
    Object.entries(options).map(([name, { short, placeholder, text, default: byDefault }]) => [
      `${short ? `-${short}, ` : ''}--${name}${placeholder ? ` ${placeholder}` : ''}`,
      byDefault ? `${text} (default: ${byDefault})` : text,
    ]),
  )
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}

function section(heading: string, lines: readonly string[]): string {
  return [`${heading}:`, ...lines].join('\n')
}

function sections(parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`
}
