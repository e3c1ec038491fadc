rule package:
    message:
        "Build the package's wheel and unpack it to build/lib"
    input:
        sources=PACKAGE_SOURCES,
    output:
        info="build/package.json",
        lib=directory("build/lib"),
        wheel=directory("build/wheel"),
    log:
        "build/package.log",
    script:
        "../scripts/package.py"
