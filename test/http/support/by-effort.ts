import { byEffort } from '../../support/effort.js'

/** The apps of every framework; in `npm run check` without Express 4, which hardly differs from 5. */
export function appsByEffort<T>(apps: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  const { 'Express 4': _older, ...others } = apps
  return byEffort({ quick: others as Readonly<Record<string, T>>, usual: apps, full: apps })
}
