/** Express 4 under an alias; what is used of it has the types of Express 5. */
declare module 'express4' {
  import express from 'express'
  export default express
}
