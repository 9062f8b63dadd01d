declare module 'pg811' {
  export * from 'pg'
}
