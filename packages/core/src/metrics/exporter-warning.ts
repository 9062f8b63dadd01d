import { emitWarning } from '../util/warnings.js'

/** For exporters: warns that there is nothing to export to. */
export function warnOfNoMeterProvider(message: string): void {
  emitWarning('SLUICE_NO_METER_PROVIDER', message)
}
