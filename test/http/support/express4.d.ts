/** Express 4 under an alias. Its types are those of Express 5, as far as they are used. */
declare module 'express4' {
  import express from 'express'
  export default express
}
