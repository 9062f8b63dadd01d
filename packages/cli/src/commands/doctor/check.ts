import type { Info, Server } from '../../redis/server.js'
import type { CheckResult } from './finding.js'
import type { DoctorOptions } from './options.js'

/** Checks one property of one Redis process. The doctor is a folder of these, one file each. */
export interface Check {
  readonly name: string
  look(server: Server, options: DoctorOptions): Promise<readonly CheckResult[]> | readonly CheckResult[]
}

/** A check of the fields of INFO. */
export function infoCheck(
  name: string,
  look: (
    info: Info,
    server: Server,
    options: DoctorOptions,
  ) => Promise<readonly CheckResult[]> | readonly CheckResult[],
): Check {
  return { name, look: async (server, options) => look(await server.info(), server, options) }
}
