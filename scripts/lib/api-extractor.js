import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'

/**
 * Runs API Extractor, with a TypeScript of its own, on a package's declarations.
 *
 * @param {string} folder of the package
 * @param {string} file the declarations to begin with
 * @param {{ isUpdate?: boolean } & Pick<import('@microsoft/api-extractor').IConfigFile, 'apiReport' | 'dtsRollup'>} wanted
 *   the output; reports are only compared unless `isUpdate`
 * @returns {boolean} whether the report has changed
 */
export function extract(folder, file, { isUpdate = false, ...wanted }) {
  const config = ExtractorConfig.prepare({
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
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: isUpdate,
    messageCallback: (message) => {
      // It reports its own TypeScript, and instructions to copy files.
      if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true
    },
  })
  return apiReportChanged
}
