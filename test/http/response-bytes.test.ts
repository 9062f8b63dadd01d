import { inMemory, responseBytesContract } from './response-bytes.contract.js'
import { SENDING_APPS } from './support/sending-apps.js'

for (const [name, factory] of Object.entries(SENDING_APPS)) responseBytesContract(name, factory, inMemory)
