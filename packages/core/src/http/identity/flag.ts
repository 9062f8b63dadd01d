import { oneOf } from '../../util/validate.js'

/** @throws SluiceError `INVALID_POLICY` */
export function flag(where: string, field: string, given: boolean | undefined, byDefault: boolean): boolean {
  if (given === undefined) return byDefault
  if (typeof given !== 'boolean') oneOf(where, field, given, ['true', 'false'])
  return given
}
