import type { ListBuilder } from '../list-data.js'
import { readCrowdSec, readJson } from './json-formats.js'
import { readNetset, readPlain } from './text-formats.js'

/** How a file holds a list. */
export type ListFormat = 'plain' | 'netset' | 'json' | 'crowdsec'

/** Adds the entries of a file to a list. `writtenAt`: when the file was written, in ms since 1970. */
type Reader = (text: string, builder: ListBuilder, writtenAt: number) => void

/** Every format of files by its name; another one is one more row. */
export const FORMATS: Readonly<Record<ListFormat, Reader>> = {
  plain: readPlain,
  netset: readNetset,
  json: readJson,
  crowdsec: readCrowdSec,
}
