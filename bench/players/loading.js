// Loads packages in a process that has loaded nothing else, and prints the CPU time of that in ms.
const names = process.argv.slice(2)
const before = process.cpuUsage()
for (const name of names) await import(name)
const { user, system } = process.cpuUsage(before)
console.log((user + system) / 1000)
