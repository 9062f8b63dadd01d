import { ABOUT } from './about.js'
import { BLOCKS } from './blocks.js'
import { CHANGES } from './changes.js'
import { CLIENT_IDS } from './client-ids.js'
import { FIGURES } from './figures.js'
import { FIND } from './find.js'
import { IDENTITIES } from './identity.js'
import { LISTS } from './lists.js'
import { NAMES } from './names.js'
import { OVERRIDES } from './overrides.js'
import { REFUSALS } from './refusals.js'
import type { Route } from './route.js'
import { SHOWN_DOCUMENT } from './shown-document.js'
import { TRAFFIC } from './traffic.js'
import { VERSIONS } from './versions.js'

/** Every route of the API, in the order of the OpenAPI document. */
export const ROUTES: readonly Route[] = [
  ...ABOUT,
  ...SHOWN_DOCUMENT,
  ...IDENTITIES,
  ...FIND,
  ...CLIENT_IDS,
  ...NAMES,
  ...BLOCKS,
  ...LISTS,
  ...REFUSALS,
  ...OVERRIDES,
  ...CHANGES,
  ...VERSIONS,
  ...FIGURES,
  ...TRAFFIC,
]
