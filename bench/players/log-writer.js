// Writes generated lines of the combined format to standard output: node log-writer.js <lines> <clients>
import { once } from 'node:events'
import { generateLog } from '../lib/log-lines.js'

const [lines, clients] = process.argv.slice(2).map(Number)
for (const bytes of generateLog({ seed: 1, lines: Number(lines), clients: Number(clients), perSecond: 2000 })) {
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
}
