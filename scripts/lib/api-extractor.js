import { CompilerState, Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'

/** @typedef {Pick<import('@microsoft/api-extractor').IConfigFile, 'apiReport' | 'dtsRollup'>} Output */

/**
 * Reads the declarations of several packages at once: those that they share, such as Node's, take longer than their own.
 *
 * @param {string} folder of one of the packages
 * @param {string[]} files the declarations to begin with
 */
export function read(folder, files) {
  const [first = '', ...others] = files
  return CompilerState.create(configOf(folder, first, {}), { additionalEntryPoints: others })
}

/**
 * Runs API Extractor, with a TypeScript of its own, on a package's declarations.
 *
 * @param {string} folder of the package
 * @param {string} file the declarations to begin with
 * @param {{ isUpdate?: boolean, compilerState?: CompilerState } & Output} wanted the output; reports are only compared unless
 *   `isUpdate`. `compilerState`: what has been read of several packages
 * @returns {boolean} whether the report has changed
 */
export function extract(folder, file, { isUpdate = false, compilerState, ...wanted }) {
  const { apiReportChanged } = Extractor.invoke(configOf(folder, file, wanted), {
    localBuild: isUpdate,
    ...(compilerState && { compilerState }),
    messageCallback: (message) => {
      // It reports its own TypeScript, and instructions to copy files.
      if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true
    },
  })
  return apiReportChanged
}

/**
 * @param {string} folder of the package
 * @param {string} file
 * @param {Output} wanted
 */
function configOf(folder, file, wanted) {
  return ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: file,
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: 'es2022',
            lib: ['es2023'],
            types: ['node'],
            module: 'node16',
            moduleResolution: 'node16',
            strict: true,
            skipLibCheck: true,
          },
          files: [file],
        },
      },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        // Some types inside exported ones are not exported, and documentation is not written for TSDoc.
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
      ...wanted,
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: `${folder}/package.json`,
  })
}
