export * from '@sluice/core'
