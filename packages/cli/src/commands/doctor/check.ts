import type { Info, Server } from '../../redis/server.js'
import type { CheckResult } from './finding.js'
import type { DoctorOptions } from './options.js'

/** Looks at one thing of one Redis process. A folder's worth of these, one file each, is the doctor. */
export interface Check {
  readonly name: string
  look(server: Server, options: DoctorOptions): Promise<readonly CheckResult[]> | readonly CheckResult[]
}

/** A check of what INFO reports. */
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
